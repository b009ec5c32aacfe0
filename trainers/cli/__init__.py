"""The commands `train`, `compare` and `finetune`."""
