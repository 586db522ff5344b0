// The folder of checkpoints: their names, and how one takes its place.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace shardarray::checkpoints {

/// `folder/step_00000120`.
std::string path_of(const std::string& folder, std::int64_t step);
/// Those that are there, ascending.
std::vector<std::int64_t> steps_in(const char* function, const std::string& folder);
/// That step, or the latest one where it is negative. Throws IoError where there is no such checkpoint.
std::int64_t existing(const char* function, const std::string& folder, std::int64_t step);

/// Whether both paths name it.
bool is_one_folder(const std::string& a, const std::string& b);
/// A new folder for an unfinished checkpoint. Removes what is left of others after a day. Throws IoError.
std::string begin_unfinished(const char* function, const std::string& folder, std::int64_t step);
/// The unfinished one becomes the checkpoint of that step, at once. The path of what it replaces, which has no name any more; empty: of
/// nothing. Throws IoError.
std::string finish(const char* function, const std::string& unfinished, const std::string& folder,
                   std::int64_t step);
/// When the disk has the folder's names this returns, and what was replaced goes. Throws IoError.
void settle(const char* function, const std::string& folder, const std::string& replaced);
/// Removes those before `step` until `keep` are left with it (0: none goes), as far as that can be done.
void remove_older(const char* function, const std::string& folder, std::int64_t step, int keep);
/// Removes it, as far as that can be done; empty: nothing.
void give_up(const std::string& unfinished);

}  // namespace shardarray::checkpoints
