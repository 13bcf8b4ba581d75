"""What one looks at afterwards: each analysis returns its data and a figure of it."""
