"""Random ONNX networks, drawn node by node with the onnx package alone. `draw.network(seed)` makes one; the other files are its families."""
