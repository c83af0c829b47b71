// Placeholder until the planner lands.
