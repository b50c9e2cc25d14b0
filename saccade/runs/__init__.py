"""Runs: from a configuration to a folder with a trained model."""
