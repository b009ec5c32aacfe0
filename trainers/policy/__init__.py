"""The policy: the model that learns, the engine that speaks for it, and the way of its weights from one to the other."""
