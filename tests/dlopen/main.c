/* A C program that knows nothing of the library: opens the plug-in, trains, closes it, twice. */
#include <dlfcn.h>
#include <stdio.h>

static int round_trip(const char* path) {
  void* plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!plugin) return fprintf(stderr, "%s\n", dlerror()), -1;
  int (*train_slope)(int) = (int (*)(int))dlsym(plugin, "train_slope");
  const int slope = train_slope ? train_slope(50) : -1;
  return dlclose(plugin) == 0 ? slope : -1;
}

int main(int argc, char** argv) {
  for (int k = 0; k < 2 && argc == 2; k++) {
    const int slope = round_trip(argv[1]);
    if (slope < 2990 || slope > 3010) return printf("round %d: slope %d / 1000\n", k, slope), 1;
  }
  return argc == 2 ? 0 : 2;
}
