package result

// SteeringCordon is what [Manifest.Steering] says where pods are steered by
// cordoning the nodes of the other operating system.
const SteeringCordon = "cordon"
