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
/// The path of the checkpoint of that step, or of the latest one where step is negative. Throws IoError where there is none.
std::string existing(const char* function, const std::string& folder, std::int64_t step);

/// Whether both paths name it.
bool is_one_folder(const std::string& a, const std::string& b);
/// A new folder for an unfinished checkpoint. Removes what is left of others after a day. Throws IoError.
std::string begin_unfinished(const char* function, const std::string& folder, std::int64_t step);
/// The unfinished one becomes the checkpoint of that step, at once; older ones go until `keep` are left (0: none goes). Throws IoError.
void finish(const char* function, const std::string& unfinished, const std::string& folder, std::int64_t step,
            int keep);
/// Removes it, as far as that can be done.
void give_up(const std::string& unfinished);

}  // namespace shardarray::checkpoints
