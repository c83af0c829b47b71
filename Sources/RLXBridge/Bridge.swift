// Placeholder until the bridge lands.
