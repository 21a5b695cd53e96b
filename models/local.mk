# The machines to simulate and the embedded model, installed as they lie here.
nobase_dist_pkgdata_DATA = \
	machines/128x64-cores.json \
	machines/128xT4-Ethernet.json \
	machines/16x8xA100-InfiniBand.json \
	machines/1xA100-PCIe.json \
	machines/1xL20.json \
	machines/1xL40.json \
	machines/1xT4.json \
	machines/2x8xH100-InfiniBand.json \
	machines/2x8xL40-Ethernet.json \
	machines/2xA100-NVLink.json \
	machines/2xA100-PCIe.json \
	machines/32-cores.json \
	machines/4xA100-NVLink.json \
	machines/4xA100-PCIe.json \
	machines/4xT4.json \
	machines/8xA100-NVLink.json \
	machines/8xA100-PCIe.json \
	machines/8xH100.json \
	machines/8xH200.json \
	machines/8xL20.json \
	machines/8xL40.json \
	machines/A100-L40-T4.json \
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
