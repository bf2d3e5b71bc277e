// Prompts by the chat template of a checkpoint.
#pragma once

#include "text/chat_encoder.h"

namespace gannet {

// The source of ChatML as a template, for `make_chat_encoder(..., "chatml")`.
std::string_view chatml_template();

// Encodes with a template. Refuses (unsupported) what a template cannot be told: tasks, reminders, images where the
// template knows none; and (bad_request) what it rejects itself. Fails with bad_file when the template does not
// parse.
Result<std::unique_ptr<ChatEncoder>> make_template_encoder(const ChatModelInfo& model, std::string_view source,
                                                           std::string_view name);

}  // namespace gannet
