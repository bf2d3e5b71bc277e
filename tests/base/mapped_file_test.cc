#include "base/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "support/model_files.h"

namespace gannet {
namespace {

namespace fs = std::filesystem;
using test::fails_with;
using test::TempDir;

TEST(MappedFile, MapsBytesAndMoves) {
  TempDir dir;
  dir.write("a", "hello");
  dir.write("empty", "");
  auto file = MappedFile::open(dir / "a");
  ASSERT_TRUE(file);
  MappedFile moved = std::move(*file);
  EXPECT_EQ(moved.bytes().size(), 5u);
  EXPECT_EQ(static_cast<char>(moved.bytes()[4]), 'o');
  EXPECT_EQ(moved.path(), dir / "a");
  moved.will_need(0, 5);
  moved.dont_need(-1, 1 << 20);
  EXPECT_EQ(static_cast<char>(moved.bytes()[0]), 'h');
  auto empty = MappedFile::open(dir / "empty");
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->bytes().empty());
  moved = std::move(*empty);
  EXPECT_TRUE(moved.bytes().empty());
}

TEST(MappedFile, NamesWhatItCannotOpen) {
  TempDir dir;
  const auto absent = MappedFile::open(dir / "absent");
  EXPECT_TRUE(fails_with(absent, {"absent", "No such file"}));
  EXPECT_EQ(absent.error().code, Errc::not_found);
  EXPECT_TRUE(fails_with(MappedFile::open(dir.path()), {dir.path().string()}));
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  const auto reader = ::open((dir / "pipe").c_str(), O_RDWR);  // so that open() of the pipe does not wait
  EXPECT_TRUE(fails_with(MappedFile::open(dir / "pipe"), {"pipe", "regular"}));
  ::close(reader);
}

TEST(ReadFile, ReadsUpToTheLimit) {
  TempDir dir;
  dir.write("a", std::string(100000, 'x'));
  EXPECT_EQ(read_file(dir / "a")->size(), 100000u);
  EXPECT_EQ(read_file(dir / "a", 100000)->size(), 100000u);
  EXPECT_TRUE(fails_with(read_file(dir / "a", 99999), {"a", "99999"}));
  EXPECT_TRUE(fails_with(read_file(dir.path()), {"folder"}));
  EXPECT_TRUE(fails_with(read_file(dir / "b"), {"b"}));
  EXPECT_FALSE(read_file("/proc/self/status")->empty());  // a file of no announced size
}

TEST(WriteFile, ReplacesWholeOrNotAtAll) {
  TempDir dir;
  ASSERT_TRUE(write_file_atomically(dir / "a", "one"));
  ASSERT_TRUE(write_file_atomically(dir / "a", std::string(1 << 20, 'z')));
  EXPECT_EQ(read_file(dir / "a")->size(), size_t{1} << 20);
  EXPECT_TRUE(fails_with(write_file_atomically(dir / "none" / "a", "x"), {"none/a"}));
  fs::create_directory(dir / "folder");
  EXPECT_FALSE(write_file_atomically(dir / "folder", "x"));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator()), 2)
      << "a temporary file stayed";
}

// The file-size limit of a process fails writes as a full disk does.
TEST(WriteFile, AFailedWriteLeavesTheOldFile) {
  TempDir dir;
  ASSERT_TRUE(write_file_atomically(dir / "a", "old"));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1000;
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = write_file_atomically(dir / "a", std::string(5000, 'x'));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_TRUE(fails_with(status, {"cannot write"}));
  EXPECT_EQ(*read_file(dir / "a"), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator()), 1)
      << "a temporary file stayed";
}

}  // namespace
}  // namespace gannet
