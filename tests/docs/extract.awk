# Makes one program of the C++ blocks of a page (OUT.cpp) and what they must print (OUT.expected), for tests/docs/check.
#   ```cpp           a block; what stands under one heading is one function, whose blocks see each other's names.
#                    Definitions of functions, structs and names go in front of it; a block with `int main` is all of them
#   ```cpp throws    a block that must throw; the message is its output
#   ```text          what the last block prints, errors and notices too; a line `...` stands for some
#   <!-- cpp         a block that readers do not see, to -->
#   | ... | shardarray |   a table with a column of code: every span in backticks must compile and run
# A block's lines count from 1 and stand in main.cpp, as in a program of the reader; in_page=1 gives lines of the page instead.

function place(k) { return in_page ? "#line " NR " \"" FILENAME "\"\n" : "#line " k " \"main.cpp\"\n" }
function add(k) {  # the line k of a block: to the definitions or to the function
  if ($0 ~ /^#include/) { includes = includes $0 "\n"; return }
  if (!inside && (whole || $0 ~ /^(struct|class|enum|template|using|namespace) / ||
                  $0 ~ /^[A-Za-z][A-Za-z0-9_:<>, &*]* [A-Za-z_]+\([^;]*$/ && $0 !~ /^(else|return) /)) inside = 1
  if (inside) {
    definitions = definitions place(k) $0 "\n"
    if ($0 ~ /^}/ || (!whole && $0 ~ /^[^ ].*[;}]$/)) inside = 0
  } else body = body place(k) $0 "\n"
}
function open_block(from) {
  blocks++
  mode = "block"; first = NR; whole = inside = 0; hidden = from == "<!--"
  throws = $0 ~ /^```cpp throws$/
  text = ""
  at = FILENAME ":" NR
  body = body "begin_block(\"" at "\");\n" (throws ? "try {\n" : "")
  print "@ " at > expected
}
function close_block(   n, lines, i, line) {
  n = split(text, lines, "\n") - 1
  for (i = 1; i <= n; i++) if (sub(/^int main\(/, "void program(", lines[i])) whole = has_main = 1
  line = NR
  for (i = 1; i <= n; i++) { $0 = lines[i]; NR = first + i; add(i) }
  NR = line
  if (throws) body = body "std::cout << \"nothing was thrown\\n\"; } catch (const std::exception& e) { std::cout << e.what() << \"\\n\"; }\n"
  mode = ""
}
function close_heading() {
  if (body != "") {
    out = out "namespace heading_" headings " {\n" definitions "void run() {\n" body (has_main ? "program();\n" : "") "}\n}\n"
    list = list "heading_" headings "::run,\n"
    headings++
  }
  definitions = body = ""; has_main = 0
  expected = OUT "." headings ".expected"
}
function cells(into,   line) {  # of a table's row; \| is no border
  line = $0
  gsub(/\\\|/, "\001", line)
  return split(line, into, "|")
}
function table_head(   head, n, i) {
  code_column = 0
  n = cells(head)
  for (i = 1; i <= n; i++) if (head[i] ~ /^ shardarray $/) code_column = i
}
function table_row(   row, cell) {
  printf "" > expected
  cells(row)
  cell = row[code_column]
  gsub(/\001/, "|", cell)
  while (match(cell, /`[^`]+`/)) {
    body = body "#line " NR " \"" FILENAME "\"\n{ " substr(cell, RSTART + 1, RLENGTH - 2) "; }\n"
    cell = substr(cell, RSTART + RLENGTH)
  }
}

BEGIN { headings = 0 }
FNR == 1 { close_heading() }
mode == "block" && (hidden ? /^-->$/ : /^```$/) { close_block(); next }
mode == "block" { text = text $0 "\n"; next }
mode == "text" && /^```$/ { mode = ""; next }
mode == "text" { print > expected; next }
mode == "other" && /^```$/ { mode = ""; next }
mode == "other" { next }
/^```cpp/ { open_block("```"); next }
/^<!-- cpp$/ { open_block("<!--"); next }
/^```text$/ { mode = "text"; next }
/^```/ { mode = "other"; next }
/^##* / { close_heading() }
/^\|/ && !in_table { table_head(); in_table = 1; next }
/^\|[- |]*$/ { next }
/^\|/ { if (code_column) table_row(); next }
{ in_table = 0 }
END {
  close_heading()
  printf "#include \"blocks.h\"\n%s%svoid (*const headings[])() = {%s};\nint main(int, char** argv) { return run_heading(headings, argv[1]); }\n",
         includes, out, list > OUT ".cpp"
  print headings
}
