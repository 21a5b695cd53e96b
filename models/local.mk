# The embedded model, installed as it lies here.
nobase_dist_pkgdata_DATA = \
	models/tesserae/README.md \
	models/tesserae/SHA256SUMS \
	models/tesserae/model_index.json \
	models/tesserae/scheduler/scheduler_config.json \
	models/tesserae/text_encoder/config.json \
	models/tesserae/text_encoder/model.safetensors \
	models/tesserae/tokenizer/special_tokens_map.json \
	models/tesserae/tokenizer/spiece.model \
	models/tesserae/tokenizer/tokenizer_config.json \
	models/tesserae/transformer/config.json \
	models/tesserae/transformer/diffusion_pytorch_model.safetensors \
	models/tesserae/vae/config.json \
	models/tesserae/vae/diffusion_pytorch_model.safetensors \
	models/tesserae/words.txt
