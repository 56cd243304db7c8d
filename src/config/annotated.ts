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

/** The annotated configuration file, as text. It loads to exactly the defaults. */
export function annotatedConfig(): string {
  const sections = Map.groupBy(SETTINGS, (setting) => setting.section);
  const blocks = [...sections].map(
    ([section, settings]) => `[${section}]\n${settings.map(entry).join('\n')}`,
  );
  return `${HEAD}\n${blocks.join('\n')}`;
}

function entry(setting: Setting): string {
  const flag = setting.flag === null ? '' : ` Flag: ${setting.flag}.`;
  const comment = [
    ...wrapped(`${setting.description}${flag}`),
    ...wrapped(`(${expectation(setting.schema)})`),
  ];
  return `${comment.map((line) => `# ${line}\n`).join('')}${setting.name} = ${JSON.stringify(setting.schema.default)}\n`;
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
