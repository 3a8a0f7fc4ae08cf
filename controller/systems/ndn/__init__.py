"""Plan NDN: FIB entries, subscriptions, trees."""
