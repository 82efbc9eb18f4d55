"""What fsure is made of: the licences of all crates that are linked in, and their list."""

import subprocess
import tomllib


def notices(project, tools, is_trial):
    """Returns a page with the notices that the licences ask for, by cargo-about. What is allowed
    is in deny.toml alone. A trial has no notices: cargo-about takes minutes to build."""
    to = tools.folder / "THIRD-PARTY.html"
    if is_trial:
        to.write_text("<p>A trial of the packaging, not to be handed on.</p>\n")
        return to
    with open(project.root / "deny.toml", "rb") as file:
        allowed = tomllib.load(file)["licenses"]["allow"]
    config = tools.folder / "about.toml"
    # A licence without further terms is among the identifiers already.
    plain = [f'"{name}"' for name in allowed if " " not in name]
    config.write_text(f"accepted = [{', '.join(plain)}]\nignore-dev-dependencies = true\n")
    project.run(
        [tools.cargo("cargo-about"), "generate", "--locked", "--offline", "--fail",
         "--config", config, "--manifest-path", project.root / "crates/fsure/Cargo.toml",
         "--output-file", to, project.root / "dist" / "notices.hbs"],
    )  # fmt: skip
    return to


def bill(project, tools, out):
    """Writes the bill of materials, by cargo-cyclonedx."""
    name = f"fsure-{project.version}.cdx"
    project.run([tools.cargo("cargo-cyclonedx"), "cyclonedx", "--format", "json", "--spec-version",
                 "1.5", "--manifest-path", project.root / "crates" / "fsure" / "Cargo.toml",
                 "--override-filename", name], stdout=subprocess.DEVNULL)  # fmt: skip
    # It writes one beside the manifest of each crate of the workspace.
    for written in project.root.glob(f"crates/*/{name}.json"):
        if written.parent.name == "fsure":
            # Not the folder of this machine.
            text = written.read_text().replace(project.root.as_uri(), "file:///fsure")
            (out / written.name).write_text(text)
        written.unlink()
