"""Neural building blocks: ``torch.nn.Module`` classes and the tensors they share."""
