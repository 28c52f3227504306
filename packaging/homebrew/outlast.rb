# Made by `cargo xtask dist` from packaging/homebrew/outlast.rb.
class Outlast < Formula
  desc "Keeps MCP calls alive between a client and its server"
  homepage "@HOMEPAGE@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  on_linux do
    on_intel do
      url "@URL@/outlast-@VERSION@-x86_64-unknown-linux-gnu.tar.gz"
      sha256 "@SHA256:outlast-@VERSION@-x86_64-unknown-linux-gnu.tar.gz@"
    end
    on_arm do
      url "@URL@/outlast-@VERSION@-aarch64-unknown-linux-gnu.tar.gz"
      sha256 "@SHA256:outlast-@VERSION@-aarch64-unknown-linux-gnu.tar.gz@"
    end
  end

  on_macos do
    on_intel do
      url "@URL@/outlast-@VERSION@-x86_64-apple-darwin.tar.gz"
      sha256 "@SHA256:outlast-@VERSION@-x86_64-apple-darwin.tar.gz@"
    end
    on_arm do
      url "@URL@/outlast-@VERSION@-aarch64-apple-darwin.tar.gz"
      sha256 "@SHA256:outlast-@VERSION@-aarch64-apple-darwin.tar.gz@"
    end
  end

  def install
    bin.install "outlast"
    man1.install "outlast.1"
    bash_completion.install "completions/outlast.bash" => "outlast"
    fish_completion.install "completions/outlast.fish"
    zsh_completion.install "completions/_outlast"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/outlast --version")
  end
end
