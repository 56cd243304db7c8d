/** `wirewatch version`: the version, the commit and the runtime. */
import { COMMIT, SQLITE, VERSION } from '../version.ts';
import { defineCommand } from './command.ts';

const INFO = {
  version: VERSION,
  commit: COMMIT,
  node: process.versions.node,
  sqlite: SQLITE,
  platform: `${process.platform}-${process.arch}`,
};

/** Also for `--version`. */
export const VERSION_TEXT = `wirewatch ${INFO.version} (commit ${INFO.commit}, Node ${INFO.node}, SQLite ${INFO.sqlite}, ${INFO.platform})`;

export const register = defineCommand({
  examples: ['version', 'version --json'],
  run: () => ({ value: INFO, text: VERSION_TEXT }),
});
