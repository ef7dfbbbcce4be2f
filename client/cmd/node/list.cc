#include "client/cmd/node/list.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/output/format.h"
#include "client/output/json.h"
#include "client/output/table.h"
#include "common/status/errors.h"

namespace traind::client {
namespace {

absl::StatusOr<v1::ListNodesResponse> ListPages(Client& client) {
  v1::ListNodesResponse all;
  v1::ListNodesRequest request;
  do {
    request.set_page_token(all.next_page_token());
    TRAIND_ASSIGN_OR_RETURN(const v1::ListNodesResponse page, client.ListNodes(request));
    all.mutable_nodes()->MergeFrom(page.nodes());
    all.set_next_page_token(page.next_page_token());
  } while (!all.next_page_token().empty());
  return all;
}

void AddRows(const v1::Node& node, Table* table) {
  for (const v1::Device& device : node.devices()) {
    table->AddRow({node.name(), device.id(), device.type(), device.model(),
                   absl::StrCat(FormatBytes(device.memory_used_bytes()), " of ",
                                FormatBytes(device.memory_total_bytes())),
                   absl::StrFormat("%.0f %%", 100 * device.utilization_ratio()), device.job()});
  }
  if (node.devices().empty()) table->AddRow({node.name(), "", "", "", "", "", ""});
}

}  // namespace

absl::StatusOr<ExitCode> RunNodeList(const NodeListOptions& options, IoStreams& io,
                                     Client& client) {
  TRAIND_ASSIGN_OR_RETURN(const v1::ListNodesResponse nodes, ListPages(client));
  if (options.common.output == OutputFormat::kJson) {
    TRAIND_RETURN_IF_ERROR(PrintJson(io, nodes));
  } else if (options.common.output == OutputFormat::kName) {
    for (const v1::Node& node : nodes.nodes()) *io.out << node.name() << "\n";
  } else {
    Table table({"NODE", "DEVICE", "TYPE", "MODEL", "MEMORY", "USE", "JOB"});
    for (const v1::Node& node : nodes.nodes()) AddRows(node, &table);
    table.Print(io);
  }
  return ExitCode::kOk;
}

void AddNodeList(CLI::App* parent, Command* selected, RunFunction<NodeListOptions> run) {
  auto options = std::make_shared<NodeListOptions>();
  CLI::App* app = parent->add_subcommand("list", "List machines and their devices");
  Bind(app, options, std::move(run), selected);
}

}  // namespace traind::client
