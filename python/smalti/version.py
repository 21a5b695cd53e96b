# SPDX-License-Identifier: Apache-2.0
"""Of the package, and of the public headers that its declarations are those of."""

__version__ = "0.1.0"
