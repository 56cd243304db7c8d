/** Manual, topic `settings`: made from the table of settings. */
import { expectation, SETTINGS, type Setting } from '../config/schema.ts';
import { page, paragraph, points, wrapped } from './text.ts';

export function settingsText(): string {
  return page(
    'SETTINGS',
    paragraph(`
      A flag wins over the environment, the environment over the configuration file, the file over the default.
      Everything that is given is checked, also where something stronger overrides it: what is unknown or wrong
      stops the start with exit code 78 and a list of all problems. A change holds from the next start on.`),
    points(
      'The configuration file is TOML: --config FILE, else the variable WIREWATCH_CONFIG, else wirewatch.toml in the data folder. config/wirewatch.toml in the source shows every setting with its default.',
      'In the environment a list is written with commas, and an empty text as an empty variable.',
      'The data folder is no setting: --data DIR, else the variable WIREWATCH_DATA, else ./wirewatch-data (./wirewatch-demo for the demonstration). Neither opens the other one.',
      'Accounts, subscriptions and keys can stand in the file too: see the topic preseeding.',
      'WIREWATCH_DEBUG=1 shows where an error comes from. WIREWATCH_ADDON_DIR names the folder in which the executable keeps the library of its database; see the topic security.',
    ),
    ...SETTINGS.map(entry),
  );
}

function entry(setting: Setting): string {
  const { section, name, description, schema } = setting;
  const given = [setting.variable, ...(setting.flag === null ? [] : [setting.flag])].join(', ');
  return [
    `[${section}] ${name} = ${JSON.stringify(schema.default)}`,
    wrapped(description, '    '),
    wrapped(`Expected: ${expectation(schema)}.`, '    '),
    wrapped(`Also given as: ${given}`, '    '),
  ].join('\n');
}
