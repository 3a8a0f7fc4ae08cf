"""Links of the kernel: interfaces, their rates, what they count."""
