/**
 * The configuration file with every setting, its meaning and its default: what `config/wirewatch.toml` holds.
 */
import { expectation, SETTINGS, type Setting } from './schema.ts';

const HEAD = `# Wirewatch configuration: every setting, with its default.
#
# A flag wins over the environment, the environment over this file, this file over the default.
# [limits] requests_per_minute is WIREWATCH_LIMITS_REQUESTS_PER_MINUTE in the environment; a list is written
# there with commas. This file is read at the start from --config FILE, from WIREWATCH_CONFIG, or as
# wirewatch.toml in the data folder. A setting that is unknown or wrong stops the start with exit code 78.
`;

const PRESEED = `# Accounts, subscriptions and keys. A start creates those that are missing, and never alters or revives one that
# exists. The members are the options of "wirewatch account add", "subscription add" and "key create".
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
# A key is given by its id and its hash, as "wirewatch key generate" prints them, or by secret_file, a file that
# holds the whole key. TOML cannot have [keys] and [[keys]] in one file: to use this, take out the section [keys]
# above. A prefix is then given as WIREWATCH_KEYS_PREFIX, or here.
#
# [[keys]]
# id = "abcdefghij23"
# hash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
# secret_file = "acme.key"            # in place of id and hash; a relative path counts from this file
# prefix = "ww"                       # with hash: the first part of the key; default: [keys] prefix
# account = "acme"
# name = "Dashboard"
# scopes = ["detections:read"]
# subscriptions = [7001]              # or ["7001:text"]
# expires = 2027-01-01T00:00:00Z      # or "none", the default
# allow_address = ["192.0.2.0/24"]    # default: any
# daily_rows = "none"                 # the default: only the account's allowance holds
`;

/**
 * The annotated configuration file, as text. It loads to exactly the defaults, but for what is chosen.
 *
 * @param chosen values by the path of their setting, each of that setting's type
 */
export function annotatedConfig(chosen: ReadonlyMap<string, string | number> = new Map()): string {
  const sections = Map.groupBy(SETTINGS, (setting) => setting.section);
  const blocks = [...sections].map(
    ([section, settings]) =>
      `[${section}]\n${settings.map((one) => entry(one, chosen.get(one.path))).join('\n')}`,
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

/** Text in lines of at most 100 characters. */
function wrapped(text: string): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > 100) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  lines.push(line);
  return lines;
}
