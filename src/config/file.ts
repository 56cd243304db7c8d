/** Finds and parses the configuration file; its values are not checked here. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parse, TomlError, type TomlTableWithoutBigInt } from 'smol-toml';
import { isErrorCode, misconfigured, reasonOf } from '../refused.ts';

/** The configuration file in the data folder, read if no other file is named. */
export const CONFIG_FILE_NAME = 'wirewatch.toml';
/** The annotated file has 8 KiB; a larger file is the wrong one. */
const FILE_BYTES_MAX = 1024 * 1024;

/**
 * Reads the named file, or else the one in the data folder if it exists.
 * @param named by the flag or the variable; undefined or empty if by neither
 * @returns the file, null if there is none; an empty table, and problems with their places, if it is not valid TOML
 * @throws Refused `configuration` if the file cannot be read
 */
export function readConfigFile(named: string | undefined, dataFolder: string) {
  const file = path.resolve(named || path.join(dataFolder, CONFIG_FILE_NAME));
  const bytes = readBytes(file, !named);
  if (bytes === null) return { file: null, table: {}, problems: [] };
  if (bytes.length > FILE_BYTES_MAX)
    throw misconfigured(
      `cannot read the configuration ${file}: it is larger than 1 MiB. Name another file with --config`,
    );
  let text = '';
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return { file, table: parseToml(text), problems: [] };
  } catch (error) {
    if (error instanceof TomlError) {
      const reason = error.message.split('\n')[0]?.replace('Invalid TOML document: ', '');
      const place = `${file}:${error.line}:${error.column}`;
      return { file, table: {}, problems: [`${place}: ${reason}${hintAt(text)}`] };
    }
    if (error instanceof TypeError) return { file, table: {}, problems: [`${file}: not UTF-8 text`] };
    throw error;
  }
}

/** @throws TomlError, whose message names the place */
export const parseToml = (text: string): TomlTableWithoutBigInt =>
  parse(text, { unsafeKeyBehaviour: 'throw', maxDepth: 20 });

/** An inline table, as in the configuration file; any other text stays text. */
export function tableOfText(text: string): unknown {
  try {
    return parseToml(`table = ${text.trim() === '' ? '{}' : text}`).table;
  } catch (error) {
    if (error instanceof TomlError) return text;
    throw error;
  }
}

/** A hint if both were used: in TOML a name cannot be a section and a list. */
function hintAt(text: string): string {
  const hasBoth = /^\s*\[\s*keys\s*\]/m.test(text) && /^\s*\[\[\s*keys\s*\]\]/m.test(text);
  return hasBoth
    ? '; TOML does not allow [keys] and [[keys]] in one file: remove [keys], and set the prefix with WIREWATCH_KEYS_PREFIX or in each [[keys]]'
    : '';
}

function readBytes(file: string, optional: boolean): Buffer | null {
  try {
    return readFileSync(file);
  } catch (error) {
    if (optional && isErrorCode(error, 'ENOENT', 'ENOTDIR')) return null;
    const reason = reasonOf(error, file);
    throw misconfigured(`cannot read the configuration ${file}: ${reason}`, { cause: error });
  }
}
