/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The use of z = x·Wᵀ + bias (matmul.h). Device kernels include it, too. */
enum smalti_epilogue {
	SMALTI_EPILOGUE_NONE,     /* y = z */
	SMALTI_EPILOGUE_GELU,     /* y = gelu_tanh(z)              docs/reference.md 3.6, 2.2 */
	SMALTI_EPILOGUE_SILU,     /* y = z / (1 + exp(-z)) */
	SMALTI_EPILOGUE_ADD,      /* y = y + z                     residual; y is f32 */
	SMALTI_EPILOGUE_GATE_ADD, /* y = y + operand[out] ⊙ z      adaLN gate, f32 [out]; y is f32 */
	SMALTI_EPILOGUE_MULTIPLY, /* y = z ⊙ operand[rows, out]    gated GELU; operand has y's dtype */
	SMALTI_EPILOGUES
};
