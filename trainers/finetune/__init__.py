"""`multiagent_finetuning`: members debate and are tuned on what they agreed on."""
