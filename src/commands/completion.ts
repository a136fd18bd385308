// `rollout completion`
import { assert } from "../base/assert.ts";
import { BaseCommand } from "../cli/base-command.ts";
import { commandTree } from "../cli/completion/command-tree.ts";
import { bashCompletion, zshCompletion, fishCompletion } from "../cli/completion/shells.ts";
import { Args } from "../cli/oclif.ts";

const SHELLS = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion } as const;
const SHELL_NAMES = ["bash", "zsh", "fish"] as const;

export class Completion extends BaseCommand {
  static override readonly summary = "Print the completion script for a shell.";
  static override readonly description =
    "Printed for this version: install it again after an upgrade. With --json it is one object, with the text in it.";
  static override readonly examples = [
    {
      description: "bash, from the next shell on:",
      command:
        "mkdir -p ~/.local/share/bash-completion/completions && <%= config.bin %> <%= command.id %> bash > ~/.local/share/bash-completion/completions/<%= config.bin %>",
    },
    {
      description: "zsh, in a directory of $fpath:",
      command: "<%= config.bin %> <%= command.id %> zsh > ~/.zfunc/_<%= config.bin %>",
    },
    {
      description: "fish:",
      command: "<%= config.bin %> <%= command.id %> fish > ~/.config/fish/completions/<%= config.bin %>.fish",
    },
    {
      description: "bash, in this shell only:",
      command: "source <(<%= config.bin %> <%= command.id %> bash)",
    },
  ];
  static override readonly args = {
    shell: Args.string({ options: [...SHELL_NAMES], required: true, description: "Whose completion." }),
  };

  override async run(): Promise<void> {
    const { args } = await this.parse(Completion);
    const shell = SHELL_NAMES.find((name) => name === args.shell);
    assert(shell !== undefined, "oclif lets known values through only");
    const script = SHELLS[shell](this.config.bin, commandTree(this.config));
    this.print([{ shell, script }], script);
  }
}
