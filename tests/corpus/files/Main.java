package org.example;

/**
 * Reads a list.
 * <p>The result is <b>never</b> null.
 * <pre>{@code List<String> names = read();}</pre>
 * @param <T> the type of the entries
 */
public final class Main<T> {
    private final java.util.Map<String, java.util.List<T>> rows = new java.util.HashMap<>();
}
