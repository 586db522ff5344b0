// The folder of checkpoints: their names, and how a new one takes its place.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace shardarray::checkpoints {

/// `folder/step_00000120`.
std::string path_of(const std::string& folder, std::int64_t step);
/// The existing steps, ascending.
std::vector<std::int64_t> steps_in(const char* function, const std::string& folder);
/// `step`, or the latest one if it is negative. Throws IoError if there is no such checkpoint.
std::int64_t existing(const char* function, const std::string& folder, std::int64_t step);

/// Whether both paths name the same folder.
bool is_one_folder(const std::string& a, const std::string& b);
/// Creates a folder for an unfinished checkpoint. Removes unfinished ones that are older than a day. Throws IoError.
std::string begin_unfinished(const char* function, const std::string& folder, std::int64_t step);
/// Makes the unfinished one the checkpoint of that step, atomically. Returns the path of the one that it replaced, which is no checkpoint
/// any more; empty: there was none. Throws IoError.
std::string finish(const char* function, const std::string& unfinished, const std::string& folder,
                   std::int64_t step);
/// Returns when the folder's names are on the disk, and removes what was replaced. Throws IoError.
void settle(const char* function, const std::string& folder, const std::string& replaced);
/// Removes those before `step` until `keep` are left, `step` included (0: removes none), as far as possible.
void remove_older(const char* function, const std::string& folder, std::int64_t step, int keep);
/// Removes an unfinished one, as far as possible; empty: does nothing.
void give_up(const std::string& unfinished);

}  // namespace shardarray::checkpoints
