/** The icons: strokes on a grid of 16, in the colour of the text around them. */
const PATHS = {
  overview: "M2 9.5 5.5 6l3 3L14 3.5M2 13.5h12",
  data:
    "M2.5 4c0-1.1 2.5-2 5.5-2s5.5.9 5.5 2-2.5 2-5.5 2-5.5-.9-5.5-2Zm0 0v8c0 1.1 2.5 2 5.5 2s5.5-.9 5.5-2V4M2.5 8c0 1.1 2.5 2 5.5 2s5.5-.9 5.5-2",
  functions:
    "M5.5 2.5c-2 0-2 1.5-2 2.7S3.500 8 2 8c1.500 0 1.500 1.600 1.500 2.800s0 2.700 2 2.700m5-11c2 0 2 1.500 2 2.700S12.500 8 14 8c-1.500 0-1.500 1.600-1.500 2.800s0 2.700-2 2.700",
  logs: "M2.500 3.500h11M2.500 6.500h7M2.500 9.500h11M2.500 12.500h5",
  users: "M8 7.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5Zm-5 6c0-2.500 2.200-4 5-4s5 1.500 5 4",
  files: "M3.500 2h5l4 4v8h-9V2Zm5 0v4h4",
  schedule: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12Zm0-9v3l2 2",
  backups: "M2.500 8a5.500 5.500 0 1 0 1.700-4M2.500 2.500v2h2M8 5v3l2 1.500",
  settings:
    "M6.500 2h3l.4 1.700 1.500.9 1.700-.5 1.500 2.600-1.300 1.200v1.800l1.300 1.200-1.500 2.600-1.700-.5-1.500.9-.4 1.700h-3l-.4-1.700-1.500-.9-1.700.5L1.400 10.900l1.300-1.200V7.900L1.400 6.700l1.500-2.600 1.700.5 1.500-.9L6.500 2ZM8 10.300a2.300 2.300 0 1 0 0-4.600 2.300 2.300 0 0 0 0 4.600Z",
  key:
    "M10 9a3 3 0 1 0-2.800-1.900L2.500 11.800v1.700h2v-1.500h1.500v-1.500h1.500L8.200 8.900A3 3 0 0 0 10 9Zm1-3.500h.01",
  audit: "M4 2.500h8v11H4v-11Zm2 3h4M6 8h4M6 10.500h2",
  link:
    "M6.500 9.500 9.500 6.500M7 4.500l1.200-1.200a2.600 2.600 0 0 1 3.700 3.700L10.700 8.200M9 11.500l-1.200 1.200a2.600 2.600 0 0 1-3.700-3.700L5.300 7.800",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10Zm3.600-1.400L14 14",
  close: "m4 4 8 8m0-8-8 8",
  more: "M3.500 8h.01M8 8h.01M12.500 8h.01",
  plus: "M8 3v10M3 8h10",
  menu: "M2 4h12M2 8h12M2 12h12",
  out: "M6 2.500H2.500v11H6M10 5l3 3-3 3m3-3H6",
  theme: "M8 13.500A5.500 5.500 0 1 0 8 2.500v11Zm0 0a5.500 5.500 0 0 1 0-11",
  warn: "M8 2 1.500 13.500h13L8 2Zm0 5v3m0 2v.01",
  check: "m3 8.500 3.500 3.500L13 4.500",
  up: "M8 13V3M4 7l4-4 4 4",
  down: "M8 3v10m4-4-4 4-4-4",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg
      width="16"
      height="16"
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth={name === "more" ? 2.4 : 1.4}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
