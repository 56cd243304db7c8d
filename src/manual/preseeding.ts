/** Manual, topic `preseeding`: accounts, subscriptions and keys that the configuration names. */
import { fenced, page, paragraph, points } from './text.ts';

const EXAMPLE = `
[[accounts]]
id = "acme"
name = "Acme News"

[[subscriptions]]
id = 7001
account = "acme"
time_zone = "Europe/Berlin"

[[keys]]
id = "abcdefghij23"
hash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
account = "acme"
name = "Dashboard"
scopes = ["detections:read"]
subscriptions = [7001]
`;

export function preseedingText(): string {
  return page(
    'PRESEEDING',
    paragraph(`
      Accounts, subscriptions and keys can stand in the configuration file: a machine that is set up by a script
      then serves from its first start. What is missing is created at a start of "wirewatch serve", in one
      transaction, before it listens. Commands go on working beside it.`),
    fenced('toml', EXAMPLE),
    'What a start does',
    points(
      'It creates what is missing, and never alters what exists: an account that was renamed or suspended, a subscription that was changed, a key that was revoked stay as they are. One line of the log, "existing entries differ from the configuration and were not changed", names them, and in what they differ; what the file does not say is not compared.',
      'A key that was revoked stays revoked, and one whose account was removed is not created again, even if an older access.db is restored: the access log has both.',
      'An entry that is wrong, or cannot be created, stops the start with exit code 78 and a list of all problems, each with its path, counted from 0: keys[1].hash. Nothing is created then.',
      'Taking an entry out of the file removes nothing. Putting another key into an entry, or into its secret file, creates that key and leaves the one before: the start and "wirewatch check" name each key that still works so, with the command that revokes it. An entry that keeps its id cannot get another secret: make a new key with "wirewatch key generate".',
      'The demonstration passes them over.',
    ),
    'The members',
    points(
      'They are the options of "wirewatch account add", "wirewatch subscription add" and "wirewatch key create", under the same rules, with underscores for dashes: daily_rows, time_zone, content_types, allow_address. An account may have print_metadata = true besides.',
      'A list is written as TOML has it, or as the option takes it: ["text"] or "text,image"; [7001, "7002:text"] or "7001,7002:text".',
      'At most 1000 accounts, 1000 subscriptions and 1000 keys.',
    ),
    'Keys',
    points(
      'By hash: "wirewatch key generate" prints a key, its id, its hash and the entry to paste. It needs no data folder and stores nothing. The file then holds nothing secret.',
      'By file: secret_file = "/run/secrets/acme-key" in place of hash (and of id, if you like) names a file that holds the whole key. Its checksum is checked; a file that every user of the machine may read is warned about. A relative path counts from the configuration file.',
      'prefix, beside hash, is the first part of the key, where it is not the one of the setting [keys] prefix. It is needed for access tokens that are asked for with id and secret.',
      'TOML cannot have [keys] and [[keys]] in one file. Beside [[keys]], the setting [keys] prefix is given as WIREWATCH_KEYS_PREFIX.',
      'expires may lie in the past: the key is created and is expired.',
    ),
  );
}
