# `nix run`, `nix build` and `nix develop`: docs/how-to/automate.md has how.
#
# There is no flake.lock: it holds the hash of nixpkgs, which only Nix with a network can take. The
# first `nix build` in a clone writes it; whoever has run that commits it.
{
  description = "Find bit rot, check that files are intact, and measure storage";

  # The stable release would not have a Rust that is new enough for long.
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixpkgs-unstable";

  outputs =
    { self, nixpkgs }:
    let
      inherit (nixpkgs) lib;
      inherit (lib.importTOML ./Cargo.toml) workspace;
      systems = [
        "x86_64-linux"
        "aarch64-linux"
        "aarch64-darwin"
        "x86_64-darwin"
      ];
      forAllSystems = make: lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
    in
    {
      packages = forAllSystems (pkgs: {
        default = pkgs.rustPlatform.buildRustPackage {
          pname = "fsure";
          inherit (workspace.package) version;
          src = self;
          cargoLock.lockFile = ./Cargo.lock;
          # Of a clone with changes it is not known.
          env.FSURE_COMMIT = self.rev or "unknown";
          cargoBuildFlags = [
            "--package=fsure"
            "--package=xtask"
          ];
          # The tests need disks, mounts and other programs, which the sandbox has not: .ci/run.
          doCheck = false;
          nativeBuildInputs = [ pkgs.installShellFiles ];
          # xtask makes what belongs to a package and is not part of it.
          postInstall = ''
            $out/bin/xtask man man
            $out/bin/xtask completions completions
            rm $out/bin/xtask
            installManPage man/*.1
            installShellCompletion completions/fsure.{bash,fish} --zsh completions/_fsure
          '';
          meta = {
            description = "Finds bit rot, checks that files are intact, and measures storage";
            homepage = workspace.package.repository;
            license = [
              lib.licenses.mit
              lib.licenses.asl20
            ];
            mainProgram = "fsure";
          };
        };
      });

      # `nix run` takes the package's mainProgram: there is no need of an app that says the same.

      devShells = forAllSystems (pkgs: {
        default = pkgs.mkShell {
          packages = [
            pkgs.cargo
            pkgs.rustc
            pkgs.clippy
            pkgs.rustfmt
            pkgs.typos
          ];
        };
      });
    };
}
