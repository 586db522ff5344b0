// It includes nothing: shardarray::pch brings the umbrella header.
int main() { return shardarray::sum(shardarray::arange(4)).item<int>() == 6 ? 0 : 1; }
