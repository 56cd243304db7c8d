/** Which settings a restart would change: the configuration is loaded again as the running process was started. */
import { isDeepStrictEqual } from 'node:util';
import { ValuePointer } from '@sinclair/typebox/value';
import { type Config, loadConfig } from '../config/load.ts';
import { SETTINGS } from '../config/schema.ts';
import { reasonOf } from '../refused.ts';
import type { Context } from './operation.ts';

export function changedSettings({ config, kind }: Pick<Context, 'config' | 'kind'>) {
  const file = config.configFile;
  // A lab or demonstration has settings of its own.
  if (kind !== 'appliance') return { file, problem: null, changed: [], what_to_do: null };
  let configured: Config;
  try {
    configured = loadConfig({ ...config.given, env: process.env, dataFolder: config.dataFolder });
  } catch (error) {
    const what_to_do =
      'Correct it before the next restart, which would fail. To check it, run: wirewatch check';
    return { file, problem: reasonOf(error), changed: [], what_to_do };
  }
  const changed = SETTINGS.flatMap(({ path, schema }) => {
    const [running, next] = [config, configured].map((from) =>
      ValuePointer.Get(from, `/${path.replaceAll('.', '/')}`),
    );
    if (isDeepStrictEqual(running, next)) return [];
    // A value that may contain a secret is null.
    const isSecret = schema.secret === true;
    return [{ name: path, running: isSecret ? null : running, configured: isSecret ? null : next }];
  });
  const what_to_do =
    changed.length === 0 ? null : 'Restart Wirewatch to use the configured values, or restore the old ones.';
  return { file: configured.configFile, problem: null, changed, what_to_do };
}
