/** The configuration file with every setting, its meaning and its default: the text of `config/wirewatch.toml`. */
import { expectation, SETTINGS, type Setting } from './schema.ts';

const HEAD = `# Wirewatch configuration: every setting, with its default.
#
# A flag overrides the environment, the environment overrides this file, and this file overrides the default.
# In the environment, [limits] requests_per_minute is WIREWATCH_LIMITS_REQUESTS_PER_MINUTE; the items of a list
# are separated by commas, and a table is written as here. Wirewatch reads this file when it starts: the file named by --config or
# WIREWATCH_CONFIG, or else wirewatch.toml in the data folder. If a setting is unknown or invalid, Wirewatch does
# not start, and exits with code 78.
`;

const PRESEED = `# A start also creates accounts, subscriptions and keys that are missing, from entries [[accounts]], [[subscriptions]]
# and [[keys]] in this file; with [[keys]], the section [keys] above must go. See: wirewatch manual preseeding
`;

/**
 * The annotated configuration file, as text. It loads to exactly the defaults, except for the chosen values.
 * @param chosen values by the path of their setting, each of that setting's type
 */
export function annotatedConfig(chosen: ReadonlyMap<string, string | number> = new Map()): string {
  const sections = Map.groupBy(SETTINGS, (setting) => setting.section);
  const blocks = [...sections].map(
    ([section, settings]) =>
      `[${section}]\n${settings.map((setting) => entry(setting, chosen.get(setting.path))).join('\n')}`,
  );
  return `${HEAD}\n${blocks.join('\n')}\n${PRESEED}`;
}

function entry(setting: Setting, chosen: string | number | undefined): string {
  const flag = setting.flag === null ? '' : ` Flag: ${setting.flag}.`;
  const common = JSON.stringify(setting.schema.default);
  const comment = [
    ...wrapped(`${setting.description}${flag}`),
    ...wrapped(`(${expectation(setting.schema)}${chosen === undefined ? '' : `; default: ${common}`})`),
  ];
  const value = chosen === undefined ? common : JSON.stringify(chosen);
  return `${comment.map((line) => `# ${line}\n`).join('')}${setting.name} = ${value}\n`;
}

/** Text in lines of at most 100 characters; a longer word has a line of its own. */
const wrapped = (text: string): string[] => text.match(/\S.{0,99}(?= |$)|\S+/g) ?? [];
