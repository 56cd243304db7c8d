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

const PRESEED = `# Accounts, subscriptions and keys. A start creates those that are missing. It never changes an existing one, and
# never brings back a revoked key. The members are the options of "wirewatch account add", "subscription add" and "key create".
#
# [[accounts]]
# id = "acme"
# name = "Acme News"
# daily_rows = 500000                 # or "none", the default: [limits] daily_rows
# print_metadata = false
#
# [[subscriptions]]
# id = 7001
# account = "acme"
# name = "Stories"
# time_zone = "Europe/Berlin"         # default: UTC
# content_types = ["text", "image"]   # the default
#
# A key is given by id and hash, as "wirewatch key generate" prints them, or by secret_file, a file that contains
# the complete key. TOML does not allow [keys] and [[keys]] in one file: to use [[keys]], remove the section [keys]
# above, and set the prefix with WIREWATCH_KEYS_PREFIX or in each entry.
#
# [[keys]]
# id = "abcdefghij23"
# hash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
# secret_file = "acme.key"            # instead of id and hash; a relative path starts at this folder
# prefix = "ww"                       # with hash: the first part of the key; default: [keys] prefix
# account = "acme"
# name = "Dashboard"
# scopes = ["detections:read"]
# subscriptions = [7001]              # or ["7001:text"]
# expires = 2027-01-01T00:00:00Z      # or "none", the default
# allow_address = ["192.0.2.0/24"]    # default: any
# daily_rows = "none"                 # the default: only the allowance of the account applies
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
function wrapped(text: string): string[] {
  return text.match(/\S.{0,99}(?= |$)|\S+/g) ?? [];
}
