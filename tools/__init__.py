"""What those who maintain gradbed run, and nobody else: no part of the package."""
