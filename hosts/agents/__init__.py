"""Worker and parameter server, each inside its host's network namespace, and the process that forks them."""
