/** `wirewatch key`: the API keys of clients. `generate` works without an installation, so it is no operation. */
import { createKey } from '../auth/key-form.ts';
import { KEY_MEMBERS } from '../operations/members.ts';
import { details } from '../text-layout.ts';
import { subcommand } from './command.ts';
import { configOf } from './installation.ts';
import { operationGroup } from './operation-command.ts';

const generate = subcommand('generate', 'generate a key and its hash offline, without storing them', {
  members: { name: KEY_MEMBERS.name },
  examples: ['key generate', 'key generate --json'],
  run({ name }, self) {
    const { prefix } = configOf(self).keys;
    const { id, key, ...stored } = createKey(prefix);
    const hash = stored.hash.toString('hex');
    const generated = { id, ...(name === undefined ? {} : { name }), key, hash };
    // The entry has the hash alone, so that a copy of the file gives no access.
    const toml = [
      `[[keys]]\nid = "${id}"\nhash = "${hash}"\nprefix = "${prefix}"\naccount = "ACCOUNT"`,
      `name = ${JSON.stringify(name ?? 'NAME')}\nscopes = ["detections:read"]\nsubscriptions = [7001]\n`,
    ].join('\n');
    return {
      value: { ...generated, toml },
      text: [
        details(Object.entries(generated)),
        'The key is not stored anywhere: keep it safe. For the configuration file, with your own account and subscriptions:',
        toml.trimEnd(),
      ].join('\n\n'),
    };
  },
});

export const register = operationGroup('key', generate);
