"""DeepSeek Harness, a client that is not ours and not in Python, end to end."""
