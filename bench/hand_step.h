// The document's training step (MLP 4-32-4, batch 16 over 8 devices, adam, 292 parameters) written by hand: the floor.
#pragma once
#include <cmath>

namespace hand {

constexpr int in = 4, hidden = 32, out = 4, batch = 16, devices = 8, rows = batch / devices;
constexpr int parameters = in * hidden + hidden + hidden * out + out;

struct Parameters {  // weights as [out, in], as in Equinox
  float w1[hidden * in], b1[hidden], w2[out * hidden], b2[out];
  float* flat() { return w1; }
};
struct Device {
  Parameters p, mu, nu, g;
  float x[rows * in], y[rows * out];
};

// Gradient of mean((y - model(x))^2) over this device's rows, divided by the size of the whole batch.
inline void gradient(const Parameters& p, const float* x, const float* y, Parameters& g) {
  float h[rows * hidden], d[rows * out], dh[rows * hidden];
  for (int r = 0; r < rows; r++) {
    for (int j = 0; j < hidden; j++) {
      float s = p.b1[j];
      for (int i = 0; i < in; i++) s += x[r * in + i] * p.w1[j * in + i];
      h[r * hidden + j] = s > 0 ? s : 0;
    }
    for (int k = 0; k < out; k++) {
      float s = p.b2[k];
      for (int j = 0; j < hidden; j++) s += h[r * hidden + j] * p.w2[k * hidden + j];
      d[r * out + k] = (s - y[r * out + k]) * (2.0f / (batch * out));
    }
  }
  for (int k = 0; k < out; k++) {
    for (int j = 0; j < hidden; j++) {
      float s = 0;
      for (int r = 0; r < rows; r++) s += d[r * out + k] * h[r * hidden + j];
      g.w2[k * hidden + j] = s;
    }
    g.b2[k] = 0;
    for (int r = 0; r < rows; r++) g.b2[k] += d[r * out + k];
  }
  for (int r = 0; r < rows; r++)
    for (int j = 0; j < hidden; j++) {
      float s = 0;
      for (int k = 0; k < out; k++) s += d[r * out + k] * p.w2[k * hidden + j];
      dh[r * hidden + j] = h[r * hidden + j] > 0 ? s : 0;
    }
  for (int j = 0; j < hidden; j++) {
    for (int i = 0; i < in; i++) {
      float s = 0;
      for (int r = 0; r < rows; r++) s += dh[r * hidden + j] * x[r * in + i];
      g.w1[j * in + i] = s;
    }
    g.b1[j] = 0;
    for (int r = 0; r < rows; r++) g.b1[j] += dh[r * hidden + j];
  }
}

inline void adam(Parameters& p, Parameters& mu, Parameters& nu, Parameters& g, int t) {
  const float c1 = 1 / (1 - std::pow(0.9f, float(t))), c2 = 1 / (1 - std::pow(0.999f, float(t)));
  float *w = p.flat(), *m = mu.flat(), *v = nu.flat(), *d = g.flat();
  for (int i = 0; i < parameters; i++) {
    m[i] = 0.1f * d[i] + 0.9f * m[i];
    v[i] = 0.001f * d[i] * d[i] + 0.999f * v[i];
    w[i] -= 3e-4f * (m[i] * c1) / (std::sqrt(v[i] * c2) + 1e-8f);
  }
}

// Eight devices with separate memories.
inline void step_separate(Device* d, int t) {
  for (int k = 0; k < devices; k++) gradient(d[k].p, d[k].x, d[k].y, d[k].g);
  for (int i = 0; i < parameters; i++) {
    float s = 0;
    for (int k = 0; k < devices; k++) s += d[k].g.flat()[i];
    for (int k = 0; k < devices; k++) d[k].g.flat()[i] = s;
  }
  for (int k = 0; k < devices; k++) adam(d[k].p, d[k].mu, d[k].nu, d[k].g, t);
}

// One shared memory: parameters and their update exist once.
inline void step_shared(Device* d, int t) {
  for (int k = 0; k < devices; k++) gradient(d[0].p, d[k].x, d[k].y, d[k].g);
  for (int i = 0; i < parameters; i++) {
    float s = 0;
    for (int k = 0; k < devices; k++) s += d[k].g.flat()[i];
    d[0].g.flat()[i] = s;
  }
  adam(d[0].p, d[0].mu, d[0].nu, d[0].g, t);
}

}  // namespace hand
