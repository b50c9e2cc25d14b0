"""What an ONNX export brings along to run it: files that are copied, and import nothing of Saccade."""
