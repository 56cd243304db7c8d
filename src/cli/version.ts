/**
 * `wirewatch version`: the version, the commit and the runtime.
 */
import type { Command } from 'commander';
import { COMMIT, SQLITE, VERSION } from '../version.ts';
import { addExamples, commonOptions } from './options.ts';
import { print } from './output.ts';

export function register(command: Command): void {
  command.action((_options: unknown, self: Command) => {
    print(versionInfo(), { json: commonOptions(self).json, text: versionText });
  });
  addExamples(command, ['version', 'version --json']);
}

/** The same facts as text, for `--version`. */
export function versionText(): string {
  const { version, commit, node, sqlite, platform } = versionInfo();
  return `wirewatch ${version} (commit ${commit}, Node ${node}, SQLite ${sqlite}, ${platform})`;
}

function versionInfo() {
  return {
    version: VERSION,
    commit: COMMIT,
    node: process.versions.node,
    sqlite: SQLITE,
    platform: `${process.platform}-${process.arch}`,
  };
}
