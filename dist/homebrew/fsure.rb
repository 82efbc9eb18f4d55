# A formula for a tap: https://docs.brew.sh/Taps. homebrew-core wants the archive of the tag and its
# sha256, which exist only once the tag does.
class Fsure < Formula
  desc "Find bit rot, verify that files are intact, and measure storage"
  homepage "https://github.com/fsure/fsure"
  url "https://github.com/fsure/fsure.git", tag: "v0.1.0"
  license any_of: ["MIT", "Apache-2.0"]
  head "https://github.com/fsure/fsure.git", branch: "main"

  depends_on "rust" => :build

  def install
    system "cargo", "install", *std_cargo_args(path: "crates/fsure")
    # xtask shares what was just compiled, unless its profile differs.
    %w[man completions].each do |task|
      system "cargo", "run", "--release", "--locked", "--package", "xtask", "--", task, task
    end
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/fsure.bash" => "fsure"
    zsh_completion.install "completions/_fsure"
    fish_completion.install "completions/fsure.fish"
  end

  test do
    (testpath/"photos/a.raw").write "as it was"
    system bin/"fsure", "update", "photos"
    assert_match "as recorded", shell_output("#{bin}/fsure verify photos")
    # Another content under the same date is damage.
    date = (testpath/"photos/a.raw").mtime
    File.write(testpath/"photos/a.raw", "as it rot")
    File.utime(date, date, testpath/"photos/a.raw")
    shell_output("#{bin}/fsure verify photos", 3)
  end
end
