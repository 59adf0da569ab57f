/** The parts of React Native's packages that the documentation uses. */

export declare const AppState: {
  addEventListener(
    type: "change" | "memoryWarning" | "blur" | "focus",
    listener: (state: "active" | "background" | "inactive" | "unknown" | "extension") => void,
  ): { remove(): void };
};

export declare function getItemAsync(key: string, options?: object): Promise<string | null>;
export declare function setItemAsync(key: string, value: string, options?: object): Promise<void>;
export declare function deleteItemAsync(key: string, options?: object): Promise<void>;
