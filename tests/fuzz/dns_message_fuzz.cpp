// A message of DNS is read to its end or refused: no name is longer than a name, what was copied is what stands there, and a
// copied name written into a question is read back as itself.

#include "names/dns_message.h"

#include "require.h"

using namespace coir::names;

namespace {

void check_name(const MessageReader& reader, std::size_t at) {
  Name name;
  if (!reader.copy_name(at, name)) return;
  require(!name.wire().empty() && name.wire().size() <= Name::kMost && name.wire().back() == 0);
  require(reader.name_is(at, name));
  unsigned char out[MessageHeader::kBytes + Name::kMost + 4];
  MessageWriter writer(out);
  writer.write(MessageHeader{.id = 7, .questions = 1});
  writer.write(name, kTypeA, kClassIn);
  require(!writer.message().empty());
  MessageReader again(writer.message());
  MessageHeader header;
  Question question;
  require(again.read(header) && again.read(question) && again.name_is(question.name_at, name));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const Exact exact(std::string_view(reinterpret_cast<const char*>(data), size));
  const std::span<const unsigned char> message(reinterpret_cast<const unsigned char*>(exact.data()), exact.size());
  MessageReader reader(message);
  MessageHeader header;
  if (!reader.read(header)) return 0;
  Question question;
  for (unsigned left = header.questions; left != 0; --left) {
    if (!reader.read(question)) return 0;
    check_name(reader, question.name_at);
  }
  Record record;
  for (unsigned left = header.answers + header.authorities + header.additionals; left != 0 && reader.read(record);
       --left) {
    require(record.data_at + record.data_size <= size);
    check_name(reader, record.name_at);
    if (record.type == kTypeCname) check_name(reader, record.data_at);
    for (const unsigned char each : reader.data(record)) static_cast<void>(each);
  }
  return 0;
}
