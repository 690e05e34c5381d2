#include "hstu/arguments/manual.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "hstu/arguments/tree.h"
#include "hstu/base/text.h"

namespace hstu {
namespace {

// Text as roff prints it: no line begins with a control character, and a hyphen can be copied to a shell.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (result.empty() || result.back() == '\n')) result += "\\&";
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  return result;
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// "hstu bench step" -> "hstu-bench-step", the name of its page.
std::string page_name(const CLI::App& command) {
  std::string name = name_of(command);
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string synopsis(const CLI::App& command) {
  std::string text = fmt::format(".B {}\n", escaped(name_of(command)));
  if (!named_options(command).empty()) text += "[\\fIOPTIONS\\fR]\n";
  for (const CLI::Option* argument : positional_arguments(command)) {
    const std::string name = fmt::format("\\fI{}\\fR", escaped(argument->get_name(true)));
    text += argument->get_required() ? name + "\n" : "[" + name + "]\n";
  }
  if (!commands_of(command).empty()) text += "\\fICOMMAND\\fR ...\n";
  return text;
}

std::string paragraphs(const CLI::App& command) {
  return fmt::format(".nf\n{}\n.fi\n", escaped(command.get_description()));
}

// "INT", "{fixed,zipf}": without the names and bounds of checks, which are for messages.
std::string value_name(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t choices = type.find('{');
  return choices != std::string::npos ? type.substr(choices) : type.substr(0, type.find(':'));
}

void append_option(const CLI::Option& option, std::string& text) {
  const std::string name = escaped(option.get_name(false, true));
  text += fmt::format(".TP\n\\fB{}\\fR", name);
  if (!option.get_positional() && takes_value(option)) text += " \\fI" + escaped(value_name(option)) + "\\fR";
  if (!option.get_default_str().empty())
    text += fmt::format(" (default: {})", escaped(option.get_default_str()));
  text += fmt::format("\n{}\n", escaped(option.get_description()));
}

// Arguments, options and closing text of a command, then those of the commands within it.
void append_body(const CLI::App& command, std::string& text) {
  for (const CLI::Option* argument : positional_arguments(command)) append_option(*argument, text);
  for (const CLI::Option* option : named_options(command)) append_option(*option, text);
  if (!command.get_footer().empty())
    text += fmt::format(".PP\n.nf\n{}\n.fi\n", escaped(command.get_footer()));
  for (const CLI::App* next : commands_of(command)) {
    text += fmt::format(".SH {}\n{}.PP\n{}", escaped(name_of(*next)), synopsis(*next), paragraphs(*next));
    append_body(*next, text);
  }
}

std::string head(const CLI::App& command, const std::string& version) {
  std::string title = page_name(command);
  std::transform(title.begin(), title.end(), title.begin(), [](unsigned char c) { return std::toupper(c); });
  return fmt::format(
      ".TH {} 1 \"\" \"{}\" \"hstu\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}.SH DESCRIPTION\n{}",
      escaped(title), escaped(version), escaped(page_name(command)),
      escaped(first_line(command.get_description())), synopsis(command), paragraphs(command));
}

// The page of the program: its commands have pages of their own.
std::string program_page(const CLI::App& app, const std::string& version) {
  std::string text = head(app, version) + ".SH COMMANDS\n";
  for (const CLI::App* command : commands_of(app)) {
    text += fmt::format(".TP\n.BR {} (1)\n{}\n", escaped(page_name(*command)),
                        escaped(first_line(command->get_description())));
  }
  return text;
}

}  // namespace

std::string manual_page(const CLI::App& command, const std::string& version) {
  std::string text = head(command, version) + ".SH OPTIONS\n";
  append_body(command, text);
  return text + ".SH SEE ALSO\n.BR hstu (1)\n";
}

void write_manual(const CLI::App& app, const Path& folder, const std::string& version) {
  const auto path = [&](const CLI::App& command) { return folder / (page_name(command) + ".1"); };
  if (!app.get_description().empty()) write_file(path(app), program_page(app, version));
  for (const CLI::App* command : commands_of(app)) write_file(path(*command), manual_page(*command, version));
}

}  // namespace hstu
