"""Fast paths, each beside its plain reference. Functions of tensors: nothing here knows of scores or selections."""
