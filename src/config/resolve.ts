/** Completes the settings, and checks those that depend on each other: folders, TLS pairs. No I/O. */
import path from 'node:path';
import { folderAround, isBucket } from '../copy/place.ts';
import { misconfigured } from '../refused.ts';
import { formatMs, parseInstant } from '../time.ts';
import { shapeProblem } from './export-settings.ts';
import { isLoopback, trustedProxies } from './listening.ts';
import { normalBaseUrl, type RawValue } from './option-values.ts';
import type { Settings } from './schema.ts';

/**
 * The settings, with `ingest.drop`, `photos.folder` absolute, `copy.to` absolute where it is a folder, `log.file` absolute or empty,
 * `tls_certificate` and `tls_key` absolute or both empty, `server.base_url` normalized or empty, and
 * `server.trusted_proxies` the addresses and networks that are trusted in the end.
 */
export type ResolvedSettings = Settings & {
  /** `ingest.earliest_time`, as the API writes times; null: it depends on the file. */
  earliestTime: string | null;
};

type RawValues = ReadonlyMap<string, RawValue>;
type TlsFiles = Pick<Settings['server'], 'tls_certificate' | 'tls_key'>;

/**
 * @param raw the values that are not defaults, by setting, for their places and folders
 * @throws Refused `configuration`
 */
export function resolve(settings: Settings, raw: RawValues, dataFolder: string): ResolvedSettings {
  const { server, ingest, photos, copy, log, admin } = settings;
  const refused = (setting: string, detail: string) =>
    misconfigured(`${raw.get(setting)?.place ?? setting}: ${detail}`);
  const pathOf = (setting: string, value: string, otherwise = ''): string =>
    value === '' ? otherwise : path.resolve(raw.get(setting)?.folder ?? '', value);
  const tlsOf = (section: 'server' | 'admin'): TlsFiles => {
    const { tls_certificate, tls_key } = settings[section];
    // A certificate is useless without its key; plain HTTP was not what the operator wanted.
    if ((tls_certificate === '') !== (tls_key === '')) {
      const [set, other] = tls_key === '' ? ['tls_certificate', 'tls_key'] : ['tls_key', 'tls_certificate'];
      const detail = `TLS also needs [${section}] ${other}. Set both, or neither for plain HTTP`;
      throw refused(`${section}.${set}`, detail);
    }
    return {
      tls_certificate: pathOf(`${section}.tls_certificate`, tls_certificate),
      tls_key: pathOf(`${section}.tls_key`, tls_key),
    };
  };
  const shape = shapeProblem(settings.exports);
  if (shape !== null) throw refused(shape.setting, shape.problem);
  const serverTls = tlsOf('server');
  const ownTls = tlsOf('admin');
  // Beyond this machine the administration port needs a certificate: its own, or that of the server.
  const isFar = admin.port !== 0 && !isLoopback(admin.host);
  const adminTls = ownTls.tls_certificate === '' && isFar ? serverTls : ownTls;
  if (isFar && adminTls.tls_certificate === '')
    throw refused(
      'admin.host',
      `${admin.host} can be reached from other machines, so the console there needs TLS. Set [admin] tls_certificate and tls_key (or those of [server]), or leave [admin] host at 127.0.0.1 and reach it through an SSH tunnel`,
    );
  const data = path.resolve(dataFolder);
  const drop = pathOf('ingest.drop', ingest.drop, path.join(dataFolder, 'drop'));
  const to = isBucket(copy.to) ? copy.to : pathOf('copy.to', copy.to);
  if (drop === data)
    throw refused('ingest.drop', `${drop} is the data folder itself; choose a separate folder`);
  const around = folderAround(to, { data, drop });
  if (around !== null)
    throw refused(
      'copy.to',
      `${to} is part of the ${around} folder; choose a folder elsewhere, preferably on another disk`,
    );
  if (copy.wait && to === '')
    throw refused('copy.wait', 'to wait for the copy needs [copy] to: where that is');
  if (copy.standby && to === '')
    throw refused('copy.standby', 'a standby needs [copy] to: the copy that it follows');
  const earliestMs = parseInstant(ingest.earliest_time);
  return {
    ...settings,
    server: {
      ...server,
      trusted_proxies: trustedProxies(server),
      base_url: server.base_url === '' ? '' : normalBaseUrl(server.base_url),
      ...serverTls,
    },
    admin: { ...admin, ...adminTls },
    ingest: { ...ingest, drop },
    photos: { folder: pathOf('photos.folder', photos.folder, path.join(dataFolder, 'photos')) },
    copy: { ...copy, to, credentials: pathOf('copy.credentials', copy.credentials) },
    log: { ...log, file: pathOf('log.file', log.file) },
    earliestTime: earliestMs === null ? null : formatMs(earliestMs),
  };
}
