#include "shardarray/where.h"

namespace shardarray::detail {

constinit thread_local CallSite call_site;
Where place_of_call() { return call_site.place(); }

}  // namespace shardarray::detail
